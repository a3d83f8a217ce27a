import sys; sys.argv=["x","none","jit"]
import numpy as np, jax, jax.numpy as jnp, optax
from peer_protocol import mlp_weights, cls_data
def run(sizes,batch,perm=False,eps=1e-8,keras=False,n=21,lr=1e-3):
    w=[jnp.asarray(a) for a in mlp_weights(sizes)]; x,y=cls_data((batch,sizes[0]),10)
    if perm: p=np.random.default_rng(5).permutation(batch); x,y=x[p],y[p]
    def loss(w,x,y):
        for i in range(len(w)//2):
            x=x@w[2*i]+w[2*i+1]
            if i<len(w)//2-1: x=jax.nn.relu(x)
        return optax.softmax_cross_entropy_with_integer_labels(x,y).mean()
    m=[jnp.zeros_like(a) for a in w]; v=[jnp.zeros_like(a) for a in w]
    @jax.jit
    def step(w,m,v,t):
        l,g=jax.value_and_grad(loss)(w,x,y)
        m=[.9*a+.1*b for a,b in zip(m,g)]; v=[.999*a+.001*b*b for a,b in zip(v,g)]
        c1=1-.9**t; c2=1-.999**t
        if keras: w=[a-lr*jnp.sqrt(c2)/c1*p/(jnp.sqrt(q)+eps) for a,p,q in zip(w,m,v)]
        else: w=[a-lr*(p/c1)/(jnp.sqrt(q/c2)+eps) for a,p,q in zip(w,m,v)]
        return w,m,v,l
    out=[]
    for t in range(1,n+1):
        w,m,v,l=step(w,m,v,jnp.float32(t)); out.append(float(l))
    return out
big=(784,2048,2048,10)
for s,b,lr in ((big,256,1e-3),(big,1024,1e-3),(big,256,1e-4),((784,128,10),1024,1e-3)):
 for name,kw in (("k",dict(eps=1e-7,keras=True)),("kperm",dict(eps=1e-7,keras=True,perm=True))):
    r=run(s,b,lr=lr,**kw); print(b,lr,name,[round(r[i],6) for i in (1,5,10,20)],flush=True)
